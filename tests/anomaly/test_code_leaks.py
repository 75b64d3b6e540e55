"""Planted code leaks in two spellings each, and clean code of the same kind."""

from __future__ import annotations

import pytest

from adjudge.protocols.anomaly.code_files import scan_text

LEAKS: dict[str, tuple[str, str, str]] = {
    "scaler fitted on train and test together": (
        "code.fit_on_test",
        """
        both = np.vstack([X_train, X_test])
        scaler = StandardScaler()
        scaler.fit(both)
        """,
        """
        frame = pl.concat([train_df, test_df])
        scaler = MinMaxScaler().fit(frame.select(FEATURES).to_numpy())
        """,
    ),
    "scaler fitted on test": (
        "code.fit_on_test",
        """
        X_test = StandardScaler().fit_transform(X_test)
        """,
        """
        norm = RobustScaler()
        holdout = norm.fit_transform(flights_test[features])
        """,
    ),
    "mean and spread of all rows, before the split": (
        "code.fit_before_split",
        """
        X_all = np.load("features.npy")
        X_all = (X_all - X_all.mean(axis=0)) / X_all.std(axis=0)
        X_train, X_test = X_all[:8000], X_all[8000:]
        """,
        """
        df = pd.read_csv("flights.csv")
        mu, sigma = df[FEATURES].mean(), df[FEATURES].std()
        df[FEATURES] = (df[FEATURES] - mu) / sigma
        train, test = df[df.flight.isin(train_ids)], df[df.flight.isin(test_ids)]
        """,
    ),
    "the same in Polars, and by least and greatest": (
        "code.fit_before_split",
        """
        df = pl.read_parquet("flights.parquet")
        df = df.with_columns((pl.col("gps_x") - pl.col("gps_x").mean()) / pl.col("gps_x").std())
        test = df.filter(pl.col("flight").is_in(test_ids))
        """,
        """
        data = np.loadtxt("log.csv")
        low, high = data.min(0), data.max(0)
        scaled = (data - low) / (high - low)
        train_rows, test_rows = scaled[:cut], scaled[cut:]
        """,
    ),
    "scaled on the test rows themselves": (
        "code.fit_on_test",
        """
        X_test = (X_test - X_test.mean(0)) / X_test.std(0)
        """,
        """
        mu = np.mean(test_df[FEATURES], axis=0)
        test_features = test_df[FEATURES] - mu
        """,
    ),
    "rows shuffled before the split": (
        "code.shuffled_split",
        """
        order = np.random.permutation(len(X))
        X = X[order]
        X_train, X_test = X[:800], X[800:]
        """,
        """
        rng = np.random.default_rng(3)
        rows = load_rows()
        rng.shuffle(rows)
        train_set, test_set = rows[:n], rows[n:]
        """,
    ),
    "shuffled indices cut in two": (
        "code.shuffled_split",
        """
        index = rng.permutation(X.shape[0])
        train_index, test_index = index[:cut], index[cut:]
        """,
        """
        df = df.sample(fraction=1.0, shuffle=True, seed=1)
        train_df, test_df = df[:cut], df[cut:]
        """,
    ),
    "a random split of rows": (
        "code.shuffled_split",
        """
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2)
        """,
        """
        X, y = sklearn.utils.shuffle(X, y, random_state=0)
        X_train, X_test = X[:800], X[800:]
        """,
    ),
    "threshold from the ROC curve of test": (
        "code.threshold_from_test",
        """
        fpr, tpr, thresholds = roc_curve(y_test, scores_test)
        best_threshold = thresholds[np.argmax(tpr - fpr)]
        """,
        """
        precision, recall, cuts = metrics.precision_recall_curve(y_test, s)
        limit = cuts[np.argmax(2 * precision * recall / (precision + recall))]
        alarms = s > limit
        """,
    ),
    "threshold from a percentile of test scores": (
        "code.threshold_from_test",
        """
        threshold = np.percentile(test_scores, 99)
        """,
        """
        bound = test_df["score"].quantile(0.99)
        alarms = test_df["score"] > bound
        """,
    ),
    "a banned column": (
        "code.banned_column",
        """
        X = df[["gps_x", "gps_y", "baroAltitude"]].to_numpy()
        """,
        """
        X_train = train_df.select("gps_x", pl.col("EKFstate")).to_numpy()
        """,
    ),
    "blanks filled with a mean of all rows": (
        "code.fit_before_split",
        """
        df = pd.read_csv("flights.csv")
        df = df.fillna(df.mean())
        df_train, df_test = df[df.flight < 80], df[df.flight >= 80]
        """,
        """
        df = pl.read_csv("flights.csv").fill_null(strategy="mean")
        train, test = df.filter(pl.col("flight") < 80), df.filter(pl.col("flight") >= 80)
        """,
    ),
    "training stopped by test": (
        "code.fit_on_test",
        """
        model.fit(X_train, y_train, validation_data=(X_test, y_test))
        """,
        """
        booster.fit(X_train, y_train, eval_set=[(X_test, y_test)], early_stopping_rounds=5)
        """,
    ),
    "contamination counted on test": (
        "code.threshold_from_test",
        """
        forest = IsolationForest(contamination=y_test.mean())
        """,
        """
        share = float(np.mean(test_df["label"]))
        clf = ECOD(contamination=share)
        """,
    ),
}


def dedent(text: str) -> str:
    import textwrap

    return textwrap.dedent(text)


@pytest.mark.parametrize("spelling", [1, 2])
@pytest.mark.parametrize("leak", LEAKS)
def test_planted_leak_is_found(leak, spelling):
    code = LEAKS[leak][0]
    assert code in {finding.code for finding in scan_text(dedent(LEAKS[leak][spelling]))}


CLEAN = {
    "scaler on train": """
        scaler = StandardScaler().fit(X_train)
        X_val, X_test = scaler.transform(X_val), scaler.transform(X_test)
    """,
    "by hand on train": """
        mu, sigma = X_train.mean(axis=0), X_train.std(axis=0)
        X_train = (X_train - mu) / sigma
        X_test = (X_test - mu) / sigma
    """,
    "pandas on train": """
        df = pd.read_csv("flights.csv")
        train, test = df[df.flight.isin(train_ids)], df[df.flight.isin(test_ids)]
        mu = train[FEATURES].mean()
        test_features = test[FEATURES] - mu
    """,
    "polars on train": """
        df = pl.read_parquet("flights.parquet")
        train = df.filter(pl.col("flight").is_in(train_ids))
        test = df.filter(pl.col("flight").is_in(test_ids))
        mu = train.select(pl.all().mean())
        train = train.with_columns((pl.col("gps_x") - mu["gps_x"]) / 2.0)
    """,
    "within each flight": """
        df = pl.read_parquet("flights.parquet")
        df = df.with_columns(pl.col("t") - pl.col("t").min().over("flight"))
        test = df.filter(pl.col("flight").is_in(test_ids))
    """,
    "flights are shuffled": """
        flights = sorted(df["flight"].unique())
        rng.shuffle(flights)
        train_flights, test_flights = flights[:20], flights[20:]
    """,
    "permuted flight ids": """
        order = np.random.permutation(len(flight_ids))
        train_ids, test_ids = flight_ids[order[:20]], flight_ids[order[20:]]
    """,
    "batches of train are shuffled": """
        for epoch in range(10):
            order = rng.permutation(len(X_train))
            for start in range(0, len(order), 64):
                step(X_train[order[start : start + 64]])
    """,
    "permutation importance": """
        def importance(model, X_test, y_test, rng):
            base = roc_auc_score(y_test, model.score(X_test))
            for j in range(X_test.shape[1]):
                mixed = X_test.copy()
                mixed[:, j] = rng.permutation(mixed[:, j])
                yield base - roc_auc_score(y_test, model.score(mixed))
    """,
    "permutation test": """
        def p_value(a, b, rng):
            both = np.concatenate([a, b])
            stats = []
            for _ in range(1000):
                order = rng.permutation(len(both))
                stats.append(both[order[: len(a)]].mean() - both[order[len(a) :]].mean())
            return np.mean(np.array(stats) >= a.mean() - b.mean())
    """,
    "threshold on validation": """
        threshold = np.quantile(val_scores, 0.99)
        alarms = test_scores > threshold
    """,
    "roc of test is reported": """
        fpr, tpr, _ = roc_curve(y_test, test_scores)
        recall_at_1 = tpr[fpr <= 0.01].max()
        print(auc(fpr, tpr), recall_at_1)
    """,
    "errors of test are summarised": """
        errors = np.abs(y_test - model.predict(X_test))
        print(np.percentile(errors, 95), errors.mean(), errors.std())
    """,
    "r squared of test": """
        residual = ((y_test - predictions) ** 2).sum()
        total = ((y_test - y_test.mean()) ** 2).sum()
        print(1 - residual / total)
    """,
    "a table of weights": """
        weights = {"ekf": 0.3, "gps": 0.7}
        total = weights["ekf"] * a + weights["gps"] * b
    """,
    "names of filters in a configuration": """
        config = json.load(open("config.json"))
        if config["ekf"]["enabled"]:
            run(config["filtered"])
    """,
    "banned columns are dropped": """
        df = df.drop(columns=["baro_alt", "mag_heading"])
        df = df.select(pl.exclude("ekf_vx", "gt_x"))
        X = df[["gps_x", "imu_ax"]]
    """,
    "labels from ground truth": """
        y = df["ground_truth"].to_numpy()
        labels = df["gt_attack"]
    """,
    "pipeline under grouped folds": """
        pipeline = make_pipeline(StandardScaler(), IsolationForest())
        for train_index, test_index in GroupKFold(5).split(X, groups=flights):
            pipeline.fit(X[train_index])
            scores = pipeline.score_samples(X[test_index])
    """,
    "a detector as its class": """
        class Mahalanobis:
            def fit(self, X_train, X_val=None):
                rows = np.concatenate(X_train)
                self.mean, self.cov = rows.mean(axis=0), np.cov(rows.T)

            def score(self, X):
                away = X - self.mean
                return np.einsum("ij,jk,ik->i", away, np.linalg.pinv(self.cov), away)
    """,
    "a plot of all flights": """
        df = pd.read_csv("flights.csv")
        for name, group in df.groupby("flight"):
            plt.plot(group["t"], group["gps_x"] - group["gps_x"].mean())
    """,
    "counts of a report": """
        results = {"test": evaluate(model, X_test), "val": evaluate(model, X_val)}
        print(results["test"]["fpr"], results["val"]["fpr"])
    """,
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean_code_is_not_flagged(name):
    assert scan_text(dedent(CLEAN[name])) == []


def test_a_list_of_them_is_long_enough():
    assert len(LEAKS) >= 12
    assert len(CLEAN) >= 20
