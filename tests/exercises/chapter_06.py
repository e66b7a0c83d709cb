"""Right answers to the exercises of chapter 6, each written in several ways."""

import math

import numpy as np
import torch
from torch.nn import functional as F

from posenc.encodings import RelativeBias, apply_rotary


def rotary_by_complex_numbers(x, start, base):
    x = np.asarray(x)
    length, d = x.shape[-2:]
    angle = np.outer(np.arange(start, start + length), base ** (-2 * np.arange(d // 2) / d))
    number = (x[..., : d // 2] + 1j * x[..., d // 2 :]) * np.exp(1j * angle)
    return np.concatenate([number.real, number.imag], axis=-1)


def rotary_by_rotating_half(x, start, base):
    """As published code often has it, in single precision."""
    x = torch.as_tensor(x).float()
    length, d = x.shape[-2:]
    phase = torch.arange(start, start + length)[:, None] / base ** (torch.arange(0, d, 2) / d)
    both = torch.cat([phase, phase], dim=-1)
    half = torch.cat([-x[..., d // 2 :], x[..., : d // 2]], dim=-1)
    return x * both.cos() + half * both.sin()


def rotary_by_matrices(x, start, base):
    x = torch.as_tensor(x).double()
    length, d = x.shape[-2:]
    rows = []
    for t in range(length):
        turn = torch.zeros(d, d, dtype=torch.float64)
        for i in range(d // 2):
            angle = (start + t) * base ** (-2 * i / d)
            turn[i, i] = turn[i + d // 2, i + d // 2] = math.cos(angle)
            turn[i + d // 2, i], turn[i, i + d // 2] = math.sin(angle), -math.sin(angle)
        rows.append(x[..., t, :] @ turn.T)
    return torch.stack(rows, dim=-2)


def rotary_of_the_library(x, start, base):
    return apply_rotary(x, start=start, base=base, layout="concat")


def bias_by_loops(table, query_length, key_length):
    clip = (len(table[0]) - 1) // 2
    first = key_length - query_length
    return [
        [[head[clip + max(-clip, min(clip, j - i))] for j in range(key_length)] for i in range(first, key_length)]
        for head in np.asarray(table)
    ]


def bias_by_slicing(table, query_length, key_length):
    """The square bias of all keys, and its last rows."""
    table = np.asarray(table)
    clip = table.shape[1] // 2
    place = np.arange(key_length)
    square = table[:, np.clip(place - place[:, None], -clip, clip) + clip]
    return square[:, key_length - query_length :]


def bias_of_the_library(table, query_length, key_length):
    layer = RelativeBias(len(table), table.shape[1] // 2).double()
    layer.load_state_dict({"table": torch.as_tensor(table)})
    query, key = torch.zeros(1, len(table), query_length, 2), torch.zeros(1, len(table), key_length, 2)
    return layer(query.double(), key.double())[2]


def extend_one_by_one(past_keys, past_values, query, key, value):
    keys, values, outputs = past_keys, past_values, []
    for q, k, v in zip(query, key, value):
        place = len(keys)
        keys = torch.cat([keys, apply_rotary(k[None], start=place)])
        values = torch.cat([values, v[None]])
        scores = keys @ apply_rotary(q[None], start=place)[0] / math.sqrt(len(q))
        outputs.append(scores.softmax(dim=0) @ values)
    return torch.stack(outputs), keys, values


def extend_with_torch(past_keys, past_values, query, key, value):
    past, new = past_keys.shape[0], query.shape[0]
    keys = torch.vstack([past_keys, apply_rotary(key, start=past)])
    values = torch.vstack([past_values, value])
    mask = torch.ones(new, past + new).tril(diagonal=past).bool()
    query = apply_rotary(query, start=past)
    return [F.scaled_dot_product_attention(query[None], keys[None], values[None], attn_mask=mask)[0], keys, values]


def extend_in_numpy(past_keys, past_values, query, key, value):
    past, d = len(past_keys), query.shape[1]

    def turned(x):
        angle = np.arange(past, past + len(x))[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)
        number = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * angle)
        return np.stack([number.real, number.imag], axis=-1).reshape(x.shape)

    keys = np.concatenate([np.asarray(past_keys), turned(np.asarray(key))])
    values = np.concatenate([np.asarray(past_values), np.asarray(value)])
    scores = turned(np.asarray(query)) @ keys.T / np.sqrt(d)
    scores[np.arange(len(keys)) > past + np.arange(len(query))[:, None]] = -np.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values, keys, values


def map_by_inverting(A, s):
    return np.linalg.matrix_power(np.linalg.inv(np.asarray(A)).T, s)


def map_by_products(A, s):
    step = torch.linalg.inv(torch.as_tensor(A).T) if s > 0 else torch.as_tensor(A).T
    found = torch.eye(len(A), dtype=step.dtype)
    for _ in range(abs(s)):
        found = found @ step
    return found


def map_in_single_precision(A, s):
    return torch.linalg.matrix_power(torch.as_tensor(A).float(), -s).T.tolist()


def turned_key():
    """The key may be turned instead, the other way."""
    angle = 5 * 10000.0 ** (-np.arange(8) / 8)
    key = np.stack([np.cos(angle), np.sin(angle)], axis=1).reshape(16)
    return [[1.0, 0.0] * 8, key.tolist()]


def mostly_fast_clocks():
    angle = -5 * 10000.0 ** (-np.arange(8) / 8)
    loud = np.array([4, 3, 2, 1, 1, 1, 1, 1])
    query = np.stack([loud * np.cos(angle), loud * np.sin(angle)], axis=1).reshape(16)
    return np.stack([query, np.tile([1.0, 0.0], 8)])


RIGHT = {
    "6.2": [rotary_by_complex_numbers, rotary_by_rotating_half, rotary_by_matrices, rotary_of_the_library],
    "6.4": [bias_by_loops, bias_by_slicing, bias_of_the_library],
    "6.6": [extend_one_by_one, extend_with_torch, extend_in_numpy],
    "6.8": [map_by_inverting, map_by_products, map_in_single_precision],
    "6.9": [turned_key(), mostly_fast_clocks()],
}
