"""The pattern files: all good ones load, bad ones are refused by file and line; a brief quotes those that fit its place."""

from __future__ import annotations

import ast

import pytest

from trainflash.errors import UsageError
from trainflash.knobs import patterns

GOOD = """\
schema: pattern.v1
name: whole_rows
title: add rows at once
answers: [slow_operator, host_code]
symptom: a loop over rows
signs:
  - 'for \\w+ in '
  - '\\.append\\('
before: |
  out = []
  for row in rows:
      out.append(row + 1)
after: |
  out = rows + 1
keeps: the same sums
traps:
  - a recurrence
"""


def written(tmp_path, text):
    path = tmp_path / "whole_rows.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_bundled_pattern_is_complete():
    found = patterns.catalogue()
    assert len(found) >= 3
    for pattern in found:
        assert all(source.startswith("https://") for source in pattern.source)
        assert ast.dump(ast.parse(pattern.before)) != ast.dump(ast.parse(pattern.after))


def test_a_pattern_needs_only_a_file(tmp_path):
    pattern = patterns.load(written(tmp_path, GOOD))
    assert (pattern.name, pattern.answers, pattern.traps) == ("whole_rows", ("slow_operator", "host_code"), ("a recurrence",))
    assert pattern.after == "out = rows + 1\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("pattern.v1", "pattern.v2", r"whole_rows\.yaml:1: .*pattern\.v2"),
        ("name: whole_rows", "name: rows", r"whole_rows\.yaml:2: name: is 'rows'"),
        ("title: add rows at once", "title: ''", r":3: title: may not be empty"),
        ("title: add rows at once", "titel: add rows at once", r":3: unknown field 'titel', did you mean 'title'"),
        ("[slow_operator, host_code]", "[slow_operator, slow]", r":4: answers: 'slow' is none of input_cpu"),
        ("[slow_operator, host_code]", "[compute]", r":4: answers: compute has no place"),
        ("[slow_operator, host_code]", "slow_operator", r":4: Expected `array`"),
        ("symptom: a loop over rows", "symptom: a loop: over rows", r":5: cannot be read: mapping values"),
        ("symptom: a loop over rows", "symptom: [1]", r":5: Expected `str`"),
        ("'for \\w+ in '", "'for (\\w+ in '", r":7: signs: .* no regular expression"),
        ("'\\.append\\('", "'\\.extend\\('", r":8: signs: .* own `before`"),
        ("      out.append(row + 1)", "      out.append(row + 1", r":1[12]: before: is no Python"),
        ("  out = rows + 1", "  out = rows +", r":14: after: is no Python"),
        ("  out = rows + 1", "\n".join(["  out = rows + 1"] * 25), r":13: after: has 25 lines"),
        ("  - a recurrence", "  - 3", r":17: Expected `str`"),
        ("keeps: the same sums\n", "", r":1: .*keeps"),
        (GOOD, "- a\n- list\n", r":1: is not a mapping"),
        (GOOD, "", r":1: is not a mapping"),
    ],
)
def test_bad_files_are_refused_by_file_and_line(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(UsageError, match=message) as caught:
        patterns.load(written(tmp_path, GOOD.replace(old, new)))
    assert "\n" not in caught.value.message and caught.value.mend


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = written(tmp_path, "")
    path.write_bytes(b"\xff\xfe\x00name: x")
    with pytest.raises(UsageError, match=r"whole_rows\.yaml: cannot be read"):
        patterns.load(path)


def test_those_that_fit_are_quoted_the_one_with_most_signs_first(tmp_path, monkeypatch):
    loads = {
        "whole_rows": GOOD,
        "always": GOOD.replace("whole_rows", "always").replace("signs:\n  - 'for \\w+ in '\n  - '\\.append\\('\n", ""),
        "other": GOOD.replace("whole_rows", "other").replace("slow_operator, host_code", "h2d"),
    }
    made = []
    for name, text in loads.items():
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
        made.append(patterns.load(tmp_path / f"{name}.yaml"))
    monkeypatch.setattr(patterns, "catalogue", lambda: tuple(made))
    code = "for x in xs:\n    ys.append(x)\n"
    assert [one.name for one in patterns.fitting("host_code", code)] == ["whole_rows", "always"]
    assert [one.name for one in patterns.fitting("host_code", "y = x @ w")] == ["always"]
    assert [one.name for one in patterns.fitting("h2d", code)] == ["other"]
    assert patterns.fitting("checkpoint", code) == ()
