"""The code scanner against a corpus of leaking and innocent snippets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adjudge.errors import InputError
from adjudge.protocols.anomaly.code_files import scan_paths, scan_text

FIT, EARLY, SHUFFLE, THRESHOLD, COLUMN = (
    "code.fit_on_test",
    "code.fit_before_split",
    "code.shuffled_split",
    "code.threshold_from_test",
    "code.banned_column",
)

LEAKS = {
    "fit on test": (FIT, 1, "scaler.fit(X_test)"),
    "fit_transform over two lines": (
        FIT,
        1,
        "Xs = scaler.fit_transform(\n    np.vstack((X_train, X_test)))",
    ),
    "concatenation through a name": (FIT, 2, "both = np.concatenate([X_train, X_test])\nscaler.fit(both)"),
    "concatenation kept under the name of train": (
        FIT,
        2,
        "X_train = pd.concat([X_train, X_test])\nmodel.fit(X_train)",
    ),
    "fit on validation": (FIT, 1, "scaler.fit(X_val)"),
    "train and validation together": (FIT, 2, "X = np.r_[X_train, X_val]\nscaler.fit(X)"),
    "alias": (FIT, 3, "a = X_test\nb = a\nscaler.fit(b)"),
    "slice": (FIT, 2, "part = X_test[:100]\nscaler.fit(part)"),
    "attribute of a frame": (FIT, 1, "scaler.fit(test_df.values)"),
    "key of a dictionary": (FIT, 2, "rows = data['test']\nscaler.fit(rows)"),
    "own function": (
        FIT,
        2,
        "def scale(rows):\n    return StandardScaler().fit(rows)\n\nscaler = scale(X_test)",
    ),
    "own function that returns test": (
        FIT,
        3,
        "def rows(test_flights):\n    return test_flights\nscaler.fit(rows(load('test.csv')))",
    ),
    "file of the test split": (FIT, 2, "df = pd.read_csv('data/test.csv')\nscaler.fit(df)"),
    "early stopping on test": (FIT, 1, "model.fit(X_train, y_train, eval_set=[(X_test, y_test)])"),
    "transductive detector": (FIT, 1, "labels = IsolationForest().fit_predict(X_test)"),
    "pipeline fitted on both": (
        FIT,
        2,
        "pipe = make_pipeline(StandardScaler(), IsolationForest())\npipe.fit(np.append(X_train, X_test, axis=0))",
    ),
    "attribute of self": (
        FIT,
        5,
        "class Run:\n    def load(self):\n        self.rows = load_test(X_test)\n    def go(self):\n        self.scaler.fit(self.rows)",
    ),
    "sum of lists": (FIT, 2, "flights = train_flights + test_flights\nscaler.fit(flights)"),
    "scaled before the split": (
        EARLY,
        1,
        "Xs = StandardScaler().fit_transform(X)\nX_train, X_test = train_test_split(Xs, shuffle=False)",
    ),
    "scaled before slicing": (
        EARLY,
        2,
        "scaler = StandardScaler()\nscaler.fit(data)\ntrain, test = data[:800], data[800:]",
    ),
    "scaled before cross-validation": (
        EARLY,
        1,
        "Xs = StandardScaler().fit_transform(X)\nscores = cross_val_score(model, Xs, y, cv=5)",
    ),
    "train_test_split shuffles": (SHUFFLE, 1, "X_train, X_test = train_test_split(X, test_size=0.2)"),
    "KFold with shuffle": (SHUFFLE, 1, "for a, b in KFold(5, shuffle=True).split(X):\n    pass"),
    "ShuffleSplit": (SHUFFLE, 1, "cv = ShuffleSplit(n_splits=3)"),
    "sample all rows": (SHUFFLE, 1, "df = df.sample(frac=1)"),
    "random_split": (SHUFFLE, 1, "train, test = torch.utils.data.random_split(rows, [80, 20])"),
    "percentile of test scores": (THRESHOLD, 1, "threshold = np.percentile(test_scores, 99)"),
    "quantile under another name": (
        THRESHOLD,
        3,
        "s = model.score_samples(X_test)\ncut = np.quantile(s, 0.99)\nalarm = s > cut",
    ),
    "youden on test": (
        THRESHOLD,
        2,
        "fpr, tpr, thresholds = roc_curve(y_test, scores)\nbest_threshold = thresholds[np.argmax(tpr - fpr)]",
    ),
    "loop over thresholds": (
        THRESHOLD,
        5,
        "best = 0\nfor t in grid:\n    f1 = f1_score(y_test, s > t)\n    if f1 > best:\n        best, best_thr = f1, t",
    ),
    "largest by a key": (
        THRESHOLD,
        1,
        "threshold = max(grid, key=lambda t: f1_score(y_test, scores > t))",
    ),
    "contamination from test labels": (
        THRESHOLD,
        1,
        "model = IForest(contamination=y_test.mean())",
    ),
    "banned column": (COLUMN, 1, "alt = df['baro_alt']"),
    "banned among columns": (COLUMN, 1, "X = df[['gps_x', 'ekf_vx']]"),
    "banned feature list": (COLUMN, 1, "FEATURES = ['gps_x', 'mag_heading_deg']"),
    "banned through a name": (COLUMN, 2, "wanted = ['gps_x', 'fused_alt']\nX = df[wanted]"),
    "banned attribute": (COLUMN, 1, "alt = df.baro_alt"),
}

INNOCENT = {
    "fit on train": "scaler.fit(X_train)",
    "fit on the values of train": "scaler.fit(X_train.values)",
    "transform of test": "X_test = scaler.transform(X_test)",
    "fit_transform of train over lines": "X_train = scaler.fit_transform(\n    X_train\n)\nX_test = scaler.transform(X_test)",
    "validation for early stopping": "model.fit(X_train, y_train, validation_data=(X_val, y_val))",
    "eval_set of validation": "model.fit(X_train, y_train, eval_set=[(X_val, y_val)])",
    "two parts of train": "both = np.vstack([X_train[:10], X_train[10:]])\nscaler.fit(both)",
    "pipeline": "make_pipeline(StandardScaler(), IsolationForest()).fit(X_train)",
    "cross-validated pipeline": "cross_val_score(make_pipeline(StandardScaler(), SVC()), X, y)",
    "folds": "for train_idx, test_idx in KFold(5).split(X):\n    scaler.fit(X[train_idx])\n    s = scaler.transform(X[test_idx])",
    "flights are split": "train_flights, test_flights = train_test_split(flight_ids, random_state=0)",
    "split in time": "X_train, X_test = train_test_split(X, shuffle=False)\nscaler.fit(X_train)",
    "groups are shuffled": "cv = GroupShuffleSplit(n_splits=3)",
    "folds without shuffle": "cv = KFold(n_splits=5, shuffle=False)",
    "threshold from validation": "threshold = np.percentile(val_scores, 99)\nalarm = test_scores > threshold",
    "roc for a figure": "fpr, tpr, thresholds = roc_curve(y_test, scores)\nplt.plot(fpr, tpr)",
    "count above the threshold": "above_threshold = (test_scores > threshold).sum()",
    "dropped": "X = df.drop(columns=['baro_alt', 'ekf_vx'])",
    "refused list": "BANNED = ['baro_alt', 'mag_heading']\nX = df[[c for c in df.columns if c not in BANNED]]",
    "guard": "if 'baro_alt' in df.columns:\n    raise ValueError('banned')",
    "labels": "y = df['ground_truth']",
    "magnitude": "X = df[['magnitude', 'unfiltered_x']]",
    "label encoder": "y = LabelEncoder().fit_transform(y)\nX_train, X_test, y_train, y_test = train_test_split(X, y, shuffle=False)",
    "own function with train": "def scale(rows):\n    return StandardScaler().fit(rows)\n\nscaler = scale(X_train)",
    "two results of one function": "X_train, X_test = prepare(X_train, X_test)\nscaler.fit(X_train)",
    "calibrator on validation": "calibrator = IsotonicRegression()\ncalibrator.fit(val_scores, y_val)",
    "test_size is no split": "n = int(len(X) * test_size)\nmodel.fit(X)",
    "value in a loop": "for key, val in items:\n    encoder.fit(val)",
    "sliced in time, fitted on train": "train, test = data[:800], data[800:]\nscaler.fit(train)",
    "deleted": "del df['baro_alt']",
    "sampled train": "X_train = X_train.sample(frac=1)",
}


@pytest.mark.parametrize("name", LEAKS)
def test_leak_is_found(name):
    code, line, text = LEAKS[name]
    assert {(item.code, item.line) for item in scan_text(text)} == {(code, line)}


@pytest.mark.parametrize("name", INNOCENT)
def test_innocent_code_is_left_alone(name):
    assert scan_text(INNOCENT[name]) == []


def test_corpus_is_large_enough():
    assert len(LEAKS) + len(INNOCENT) >= 40


def _notebook(*cells: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": text.splitlines(keepends=True)} for text in cells]})


def test_notebook_leak_names_cell_and_line(tmp_path):
    (tmp_path / "a.ipynb").write_text(
        _notebook("%matplotlib inline\nboth = np.vstack([X_train, X_test])", "!ls\nscaler.fit(both)")
    )
    (leak,) = scan_paths([tmp_path]).leaks
    assert (leak.code, leak.cell, leak.line) == (FIT, 2, 2)
    assert leak.place.endswith("a.ipynb cell 2:2")


def test_innocent_notebook(tmp_path):
    (tmp_path / "a.ipynb").write_text(_notebook("%%bash\nls", "scaler.fit(X_train)"))
    report = scan_paths([tmp_path])
    assert (report.leaks, report.files, report.unread) == ([], 1, [])


def test_what_cannot_be_read_is_listed(tmp_path):
    (tmp_path / "bad.py").write_text("def (")
    (tmp_path / "bad.ipynb").write_text("[]")
    report = scan_paths([tmp_path])
    assert len(report.unread) == 2
    assert "bad.py: cannot be parsed: SyntaxError" in report.unread[1]


def test_unit_tests_of_a_folder_are_left_out(tmp_path):
    (tmp_path / "test_x.py").write_text("scaler.fit(X_test)")
    assert scan_paths([tmp_path]).skipped == 1
    assert len(scan_paths([tmp_path / "test_x.py"]).leaks) == 1


def test_missing_path():
    with pytest.raises(InputError, match="nowhere: there is no such file"):
        scan_paths([Path("nowhere")])


REVIEWED = {
    # Rows are split at random for early stopping, or to make a data set: wrong for time series.
    ("sklearn/ensemble/_gb.py", SHUFFLE),
    ("sklearn/ensemble/_hist_gradient_boosting/gradient_boosting.py", SHUFFLE),
    ("sklearn/model_selection/_classification_threshold.py", SHUFFLE),
    ("sklearn/neural_network/_multilayer_perceptron.py", SHUFFLE),
    ("sklearn/utils/estimator_checks.py", SHUFFLE),
    ("sklearn/model_selection/_split.py", SHUFFLE),
    # Test rows are shifted by their own least value.
    ("sklearn/utils/estimator_checks.py", FIT),
    ("pyod/models/lunar.py", SHUFFLE),
    ("pyod/utils/data.py", SHUFFLE),
    # A calibrator is fitted on what the code calls test: right inside a fold, a leak by name.
    ("sklearn/calibration.py", FIT),
}


@pytest.mark.parametrize("package", ["sklearn", "pyod"])
def test_installed_sources_raise_only_reviewed_alarms(package):
    root = Path(pytest.importorskip(package).__file__).parent
    report = scan_paths([root])
    assert report.files > 50
    assert report.unread == []
    found = {(Path(leak.file).relative_to(root.parent).as_posix(), leak.code) for leak in report.leaks}
    assert found <= REVIEWED
