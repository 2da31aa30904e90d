#!/usr/bin/env python3
"""The wind power task of SGCRF Sec. 5.2 (GEFCom 2012): features and outputs as .npy, and ridge regression on the same features.

usage: wind.py features DATA OUT     x.npy and y.npy for training, validation and test: OUT/{train,valid,test}-{x,y}.npy
       wind.py ridge OUT             ridge, its penalty by the validation rows, on the test rows

DATA has train.csv.gz and windforecasts_wf{1..7}.csv.gz. A row is one forecast (every 12 hours): its outputs the power of 7 farms in the next 48 hours (336), its inputs the power of the last
8 hours (56) and 10 radial basis functions of each forecast speed (3360). Only forecasts whose 48 hours are all known are used (July 2009 to December 2010: afterwards the competition hides them).
The last quarter in time is the test, the 15 % before it the validation; between them 4 forecasts are left out, so that no hour is in two parts.
"""
import csv, gzip, pathlib, sys
from datetime import datetime, timedelta
import numpy as np

FARMS, AHEAD, PAST, CENTRES = 7, 48, 8, 10


def rows(path):
    with gzip.open(path, "rt") as file:
        yield from csv.DictReader(file)


def hour(text):
    return datetime.strptime(text, "%Y%m%d%H")


def features(data, out):
    power = {hour(r["date"]): [float(r[f"wp{k + 1}"]) for k in range(FARMS)] for r in rows(data / "train.csv.gz")}
    speed = {}
    for k in range(FARMS):
        for r in rows(data / f"windforecasts_wf{k + 1}.csv.gz"):
            if r["ws"] and r["ws"] != "NA":
                speed[hour(r["date"]), k, int(r["hors"])] = float(r["ws"])
    x, y = [], []
    for start in sorted({t for t, _, _ in speed}):
        ahead = [start + timedelta(hours=h) for h in range(1, AHEAD + 1)]
        before = [start - timedelta(hours=h) for h in range(PAST)]
        own = [speed.get((start, k, h)) for k in range(FARMS) for h in range(1, AHEAD + 1)]
        if all(t in power for t in ahead + before) and None not in own:
            x.append([power[t][k] for k in range(FARMS) for t in before] + own)
            y.append([power[t][k] for k in range(FARMS) for t in ahead])
    x, y = np.array(x), np.array(y)
    past, speeds = x[:, : FARMS * PAST], x[:, FARMS * PAST :]
    # Centres at the deciles of all speeds, each as wide as their mean distance.
    centres = np.quantile(speeds, (np.arange(CENTRES) + 0.5) / CENTRES)
    width = np.diff(centres).mean()
    basis = np.exp(-((speeds[:, :, None] - centres) ** 2) / (2 * width**2)).reshape(len(x), -1)
    x = np.hstack([past, basis])
    m = len(x)
    a, b = int(0.6 * m), int(0.75 * m)
    parts = {"train": slice(0, a), "valid": slice(a + 4, b), "test": slice(b + 4, m)}
    out.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        np.save(out / f"{name}-x.npy", x[part])
        np.save(out / f"{name}-y.npy", y[part])
        print(f"{name}: {len(x[part])} rows, {x.shape[1]} inputs, {y.shape[1]} outputs")


def ridge(out):
    load = lambda name: (np.load(out / f"{name}-x.npy"), np.load(out / f"{name}-y.npy"))

    def fitted(name, to, penalties):
        (x, y), (x2, y2) = load(name), load(to)
        mean, scale = x.mean(0), x.std(0)
        scale[scale == 0] = 1
        x, x2 = (x - mean) / scale, (x2 - mean) / scale
        w, q = np.linalg.eigh(x @ x.T)
        cross, coefficients = x2 @ (x.T @ q), q.T @ (y - y.mean(0))
        for penalty in penalties:
            error = y2 - y.mean(0) - cross @ (coefficients / (w + penalty)[:, None])
            yield penalty, (error**2).mean()

    tried = list(fitted("train", "valid", 10.0 ** np.arange(1, 7, 0.25)))
    best = min(tried, key=lambda t: t[1])
    (_, mse), = fitted("train", "test", [best[0]])
    test = load("test")[1]
    flat = ((test - load("train")[1].mean(0)) ** 2).mean()
    print(f"ridge: penalty {best[0]:.4g} (validation mse {best[1]:.6f}), test mse {mse:.6f}; the mean alone {flat:.6f}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["features", data, out]:
            features(pathlib.Path(data), pathlib.Path(out))
        case ["ridge", out]:
            ridge(pathlib.Path(out))
        case _:
            sys.exit(__doc__)
