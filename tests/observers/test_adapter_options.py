"""Options of adapters: every source declares what it accepts, once, with a type."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

import pytest

from cuebench.errors import UserError
from cuebench.observers.adapters import _options
from cuebench.observers.adapters._options import PREPROCESS, PREPROCESS_PREFIXED, option_values, overridden, with_option
from cuebench.observers.base import LoadOptions, Spec
from cuebench.observers.preprocess import Preprocess
from cuebench.options import Option, describe
from cuebench.registry import adapters


@pytest.mark.parametrize("name", adapters.names())
class TestEveryAdapter:
    def test_examples_use_declared_options(self, name):
        adapter = adapters.get(name)
        for example in adapter.examples:
            option_values(Spec.parse(example), adapter.options)

    def test_the_form_names_declared_options_only(self, name):
        adapter = adapters.get(name)
        named = set(re.findall(r"([a-z_]+(?:\.[a-z]+)?)=", adapter.form.partition(":")[2]))
        assert named <= set(adapter.options)

    def test_every_option_is_explained_and_its_default_fits(self, name):
        options = adapters.get(name).options
        assert options
        for line, (key, option) in zip(describe(options), options.items()):
            assert line.startswith(f"{key}=")
            assert option.about
            assert option.default in ("", ()) or option.parse(option.default) == option.default

    def test_an_unknown_option_is_refused_before_anything_is_read(self, name):
        adapter = adapters.get(name)
        spec = Spec.parse(with_option(Spec.parse(adapter.examples[0]), "nonsense=1"))
        with pytest.raises(UserError, match="'nonsense'"):
            adapter.load(spec, LoadOptions(device="cpu", offline=True, targets=("cat", "dog")))


def test_common_options_are_declared_once():
    """The same name has the same meaning wherever it stands, but for what an adapter says otherwise."""
    special = {"weights", "labels", "name", "features"}
    shared = {**_options.TORCH, **PREPROCESS}
    for name in adapters:
        for key, option in adapters.get(name).options.items():
            if key in shared and key not in special and (name, key) != ("control", "seed"):  # of its training
                assert option is shared[key], f"{name}: {key}"


def test_an_option_without_a_value_is_refused():
    with pytest.raises(UserError, match="option 'seed' has no value"):
        option_values(Spec.parse("timm:x?seed=&name=a"), _options.TORCH)
    with pytest.raises(UserError, match="Did you mean 'name'"):
        option_values(Spec.parse("timm:x?nmae=a"), _options.TORCH)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("size=224", {"size": 224}),
        ("size=224x256", {"size": (224, 256)}),
        ("size=224,256&resize=8", {"size": (224, 256), "resize": 8}),
        ("mean=0.5", {"mean": (0.5, 0.5, 0.5)}),
        ("mean=1,2,3&std=0.1", {"mean": (1.0, 2.0, 3.0), "std": (0.1, 0.1, 0.1)}),
        ("crop=off&scale=1&centre=down&interpolation=box",
         {"crop": False, "scale": 1.0, "centre": "down", "interpolation": "box"}),
    ],
)  # fmt: skip
def test_changes_of_the_preprocessing(query, expected):
    keys = dict(parse_qsl(query))
    spec = Spec.parse("timm:x?" + "&".join(f"preprocess.{k}={v}" for k, v in keys.items()))
    base = Preprocess(size=32, resize=36, source="the weights")
    changed = overridden(base, spec, option_values(spec, PREPROCESS_PREFIXED))
    assert {key: getattr(changed, key) for key in expected} == expected
    assert changed.source == f"the weights; {', '.join(sorted(keys))} by the user"
    assert overridden(base, Spec.parse("timm:x"), option_values(spec, PREPROCESS_PREFIXED)) is base


def test_with_option_extends_any_spec():
    assert with_option(Spec.parse("timm:x"), "name=a") == "timm:x?name=a"
    assert with_option(Spec.parse("timm:x?seed=1"), "name=a") == "timm:x?seed=1&name=a"


def test_lists_of_numbers():
    size = Option((), "pixels", item=int, lengths=(1, 2), low=1)
    assert size.parse("224 x 256") == size.parse((224, 256)) == (224, 256)
    assert size.parse(7) == (7,)
    for wrong in ("0", "1x2x3", "1,", "a", "1.5", ""):
        with pytest.raises(ValueError):
            size.parse(wrong)
    assert size.accepted() == "1 or 2 whole numbers ≥ 1, separated by commas or x"
