"""Where two documents differ, in words."""

from adjudge.engine.differences import differences


def test_a_list_that_only_grew_is_an_addition_and_says_so():
    (one,) = differences({"tasks": ["a", "b"]}, {"tasks": ["a", "new", "b"]}, 5)
    assert (one.path, one.words, one.added) == ("tasks", "tasks has 2 entries, recomputed 3", True)


def test_another_value_goes_before_an_addition():
    changed, added = differences({"n": 1, "notes": []}, {"n": 2, "notes": ["said"]}, 5)
    assert (changed.words, changed.added) == ("n is 1, recomputed 2", False)
    assert added.added
