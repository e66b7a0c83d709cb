"""Right answers to the exercises of chapter 1, differently written."""

import math

import numpy as np
import torch
from torch.nn import functional as F


def softmax_by_loops(scores):
    rows = []
    for row in scores.tolist():
        powers = [math.exp(score - max(row)) for score in row]
        rows.append([power / sum(powers) for power in powers])
    return rows


def softmax_through_logarithms(scores):
    return np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])


def softmax_along_columns_of_the_transpose(scores):
    flipped = scores.T - scores.T.max(axis=0)
    return (np.exp(flipped) / np.exp(flipped).sum(axis=0)).T


def attention_one_sentence_at_a_time(q, k, v):
    weights = np.stack([_softmax(a @ b.T / math.sqrt(b.shape[1])) for a, b in zip(q, k)])
    return [np.stack([w @ c for w, c in zip(weights, v)]), weights]


def attention_with_scaled_queries(q, k, v):
    q = q.double() * q.size(-1) ** -0.5
    weights = torch.softmax(torch.bmm(q, k.double().transpose(1, 2)), dim=2)
    return weights @ v.double(), weights


def attention_by_loops(q, k, v):
    batch, queries, keys = q.shape[0], q.shape[1], k.shape[1]
    weights = np.zeros((batch, queries, keys))
    for b in range(batch):
        for t in range(queries):
            powers = [math.exp(sum(q[b, t] * k[b, s]) / q.shape[2] ** 0.5) for s in range(keys)]
            weights[b, t] = np.array(powers) / sum(powers)
    return np.einsum("bts,bsv->btv", weights, v), weights


def _softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def masked_row_by_row(scores, allowed):
    result = np.zeros(scores.shape)
    for row, (values, may) in enumerate(zip(scores, allowed)):
        if may.any():
            result[row, may] = _softmax(values[may])
    return result


def masked_by_cleaning(scores, allowed):
    return torch.nan_to_num(torch.where(allowed, scores, -torch.inf).softmax(-1))


def masked_by_a_large_number(scores, allowed):
    return F.softmax(scores.double() - 1e9 * (~allowed), dim=1) * allowed


def masked_by_exponentials(scores, allowed):
    powers = np.exp(scores) * np.asarray(allowed)
    total = powers.sum(axis=1, keepdims=True)
    return np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)


def merge_by_a_loop(heads):
    return np.concatenate([heads[:, h] for h in range(heads.shape[1])], axis=-1)


def merge_by_einsum(heads):
    return torch.einsum("bhtd->bthd", heads).reshape(heads.shape[0], heads.shape[2], -1)


def merge_by_moving_the_axis(heads):
    moved = np.moveaxis(heads, 1, 2)
    return [[[feature for head in token for feature in head] for token in sentence] for sentence in moved.tolist()]


def causal_by_prefixes(q, k, v):
    return torch.cat([F.scaled_dot_product_attention(q[t : t + 1], k[: t + 1], v[: t + 1]) for t in range(len(q))])


def causal_by_running_sums(q, k, v):
    rows = []
    for t, query in enumerate(q):
        total, mixed = 0.0, np.zeros(v.shape[1])
        for key, value in zip(k[: t + 1], v[: t + 1]):
            power = math.exp(query @ key / math.sqrt(len(key)))
            total, mixed = total + power, mixed + power * value
        rows.append(mixed / total)
    return np.array(rows, dtype=np.float32)


def causal_with_a_mask_all_the_same(q, k, v):
    return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]


RIGHT = {
    "1.1": [
        softmax_by_loops, softmax_through_logarithms, softmax_along_columns_of_the_transpose,
        lambda scores: F.softmax(scores.double(), dim=1),
    ],
    "1.2": [attention_one_sentence_at_a_time, attention_with_scaled_queries, attention_by_loops],
    "1.3": [0.881, "0.8808", math.e**2 / (math.e**2 + 1), torch.tensor([2.0, 0.0]).softmax(0)[0]],
    "1.4": [masked_row_by_row, masked_by_cleaning, masked_by_a_large_number, masked_by_exponentials],
    "1.5": ["c", "(C)", ["c"]],
    "1.6": [merge_by_a_loop, merge_by_einsum, merge_by_moving_the_axis],
    "1.7": [causal_by_prefixes, causal_by_running_sums, causal_with_a_mask_all_the_same],
    "1.8": [4, "4", "(4)", "line 4 is false"],
}
