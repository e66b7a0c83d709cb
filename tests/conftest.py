"""Settings of the whole suite."""

import os

import hypothesis
import matplotlib

# Not by the environment: kernels that tests start would inherit it, and plt.show() would warn there.
matplotlib.use("Agg")

hypothesis.settings.register_profile("book", deadline=None, derandomize="CI" in os.environ, print_blob=True)
hypothesis.settings.load_profile("book")
