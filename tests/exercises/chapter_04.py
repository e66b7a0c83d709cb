"""Right answers to the exercises of chapter 4, written differently."""

import math

import numpy as np
import torch
from posenc.encodings import sinusoidal_encoding

SYMMETRIC = ("4.4",)


def table_in_numpy(length, d_model, base):
    pair = np.arange(d_model // 2)
    phase = np.outer(np.arange(length), base ** (-2 * pair / d_model))
    return np.concatenate([np.sin(phase), np.cos(phase)], axis=1)


def table_in_loops(length, d_model, base):
    half = d_model // 2
    rows = []
    for position in range(length):
        angles = [position / base ** (2 * pair / d_model) for pair in range(half)]
        rows.append([math.sin(a) for a in angles] + [math.cos(a) for a in angles])
    return rows


def table_by_exp_and_log(length, d_model, base):
    frequency = torch.exp(torch.arange(0, d_model, 2) * (-math.log(base) / d_model))
    phase = torch.einsum("p,i->pi", torch.arange(length).float(), frequency)
    return torch.hstack([torch.sin(phase), torch.cos(phase)])


def table_of_the_library(length, d_model, base):
    return sinusoidal_encoding(length, d_model, base=base, layout="concat")


def shift_in_loops(d_model, k):
    half = d_model // 2
    matrix = np.zeros((d_model, d_model))
    for pair in range(half):
        angle = k * 10000 ** (-2 * pair / d_model)
        matrix[pair, pair] = matrix[half + pair, half + pair] = math.cos(angle)
        matrix[pair, half + pair], matrix[half + pair, pair] = math.sin(angle), -math.sin(angle)
    return matrix


def shift_by_kron(d_model, k):
    angle = k * 10000.0 ** (-2 * torch.arange(d_model // 2) / d_model)
    still, turn = torch.eye(2), torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    return torch.kron(still, torch.diag(angle.cos())) + torch.kron(turn, torch.diag(angle.sin()))


def shift_solved(d_model, k):
    codes = sinusoidal_encoding(3000, d_model, layout="concat", dtype=torch.float64, start=-1500)
    target = sinusoidal_encoding(3000, d_model, layout="concat", dtype=torch.float64, start=-1500 + k)
    return torch.linalg.lstsq(codes, target).solution.T


def mirror_in_loops(m, d_model):
    half = d_model // 2
    matrix = [[0.0] * d_model for _ in range(d_model)]
    for pair in range(half):
        angle = m / 10000 ** (pair / half)
        matrix[pair][pair], matrix[pair][half + pair] = -math.cos(angle), math.sin(angle)
        matrix[half + pair][pair], matrix[half + pair][half + pair] = math.sin(angle), math.cos(angle)
    return matrix


def mirror_as_product(m, d_model):
    flip = torch.diag(torch.cat([-torch.ones(d_model // 2), torch.ones(d_model // 2)]))
    return shift_by_kron(d_model, m) @ flip


def recover_by_eigenvalues(codes):
    codes = np.asarray(codes, dtype=float)
    step = np.linalg.lstsq(codes[:-1], codes[1:], rcond=None)[0]
    angles = np.angle(np.linalg.eigvals(step))
    return sorted(float(angle) for angle in angles if angle > 0)


def recover_by_arccos(codes):
    step = torch.linalg.pinv(codes[:-1]) @ codes[1:]
    cosines = torch.linalg.eigvalsh((step + step.T) / 2)
    return torch.arccos(cosines).sort().values[::2]


def recover_in_single_precision(codes):
    codes = codes.float()
    values = torch.linalg.eigvals(torch.linalg.lstsq(codes[:-1], codes[1:]).solution)
    return torch.atan2(values.imag, values.real).sort().values[codes.shape[1] // 2 :]


def dials(frequencies):
    phase = np.outer(np.arange(64), frequencies)
    return np.concatenate([np.sin(phase), np.cos(phase)], axis=1)


def mixed_by_qr():
    matrix = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(3)))[0]
    return sinusoidal_encoding(64, 6, dtype=torch.float64) @ matrix


def mixed_by_a_mirror():
    normal = np.arange(1.0, 7.0)
    return dials([0.5, 1.0, 2.0]) @ (np.eye(6) - 2 * np.outer(normal, normal) / (normal @ normal))


def a_wheel_of_sixty_four():
    """Positions of a wheel with 64 places, its first three overtones, mixed."""
    turn = np.linalg.svd(np.vander(np.arange(6.0), 6))[0]
    return (dials(2 * np.pi / 64 * np.array([1, 2, 3])) * [1, 2, 3, 1, 2, 3] @ turn).astype(np.float32)


def with_a_constant_and_an_alternation():
    position = np.arange(64)
    phase = np.outer(position, [0.3, 1.2])
    parts = [np.sin(phase), np.cos(phase), np.ones((64, 1)), (-1.0) ** position[:, None]]
    return (np.concatenate(parts, axis=1) @ np.linalg.qr(np.tri(6) + np.eye(6))[0]).tolist()


RIGHT = {
    "4.1": [table_in_numpy, table_in_loops, table_by_exp_and_log, table_of_the_library],
    "4.2": [2 * math.pi * 10000 ** (62 / 64), 47117, "47117.2"],
    "4.3": [shift_in_loops, shift_by_kron, shift_solved],
    "4.4": [mirror_in_loops, mirror_as_product],
    "4.5": [recover_by_eigenvalues, recover_by_arccos, recover_in_single_precision],
    "4.6": ["d", "(d)"],
    "4.7": [mixed_by_qr(), mixed_by_a_mirror(), a_wheel_of_sixty_four(), with_a_constant_and_an_alternation()],
}
