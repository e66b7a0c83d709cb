"""The table of known faults and of what holds each: python tests/known_faults.py prints it."""

import pathlib
import tomllib

FILE = pathlib.Path(__file__).with_suffix(".toml")


def faults() -> list[dict]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))["fault"]


def table() -> str:
    """As Markdown, one row a fault."""
    rows = ["| what goes wrong | right is | held by |", "|---|---|---|"]
    for fault in faults():
        holders = ", ".join(f"`{holder.removeprefix('tests/')}`" for holder in fault["held_by"])
        rows.append(f"| {fault['name']} | {fault['right']} | {holders} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
