"""Compares objects with the types of the Kubernetes API, which the package python3-kubernetes holds."""

import re

from kubernetes import client

# Of the Prometheus Operator, which that package does not know: every field that may be used.
SERVICE_MONITOR = {
    "apiVersion": str, "kind": str, "metadata": "V1ObjectMeta",
    "spec": {"selector": "V1LabelSelector",
             "endpoints": [{"port": str, "path": str, "interval": str, "scrapeTimeout": str}]},
}


def problems(value: dict) -> list[str]:
    """What is wrong with an object: fields that its type does not have or lacks, values of another type."""
    kind = value["kind"]
    type_of = SERVICE_MONITOR if kind == "ServiceMonitor" else f"V1{kind}"
    return list(compare(value, type_of, kind))


def compare(value, wanted, place):
    if isinstance(wanted, str):
        yield from compare_named(value, wanted, place)
    elif isinstance(wanted, dict):
        for name, inner in value.items():
            if name not in wanted:
                yield f"{place}: no field {name}"
            else:
                yield from compare(inner, wanted[name], f"{place}.{name}")
    elif isinstance(wanted, list):
        for index, inner in enumerate(value):
            yield from compare(inner, wanted[0], f"{place}[{index}]")
    elif not isinstance(value, wanted):
        yield f"{place}: {value!r} is no {wanted.__name__}"


def compare_named(value, wanted: str, place):
    """Against a type as the package names them: "V1Pod", "list[V1Container]", "dict(str, str)", "int"."""
    if wanted == "object":  # a number or a name
        return
    if match := re.fullmatch(r"list\[(.+)\]", wanted):
        if not isinstance(value, list):
            yield f"{place}: {value!r} is no list"
            return
        yield from compare(value, [match[1]], place)
    elif match := re.fullmatch(r"dict\(str, (.+)\)", wanted):
        for name, inner in value.items():
            yield from compare_named(inner, match[1], f"{place}.{name}")
    elif wanted in ("str", "int", "bool", "float"):
        if type(value).__name__ != wanted:
            yield f"{place}: {value!r} is no {wanted}"
    else:
        yield from compare_object(value, getattr(client, wanted), place)


def compare_object(value, model, place):
    attributes = {json_name: name for name, json_name in model.attribute_map.items()}
    for name, inner in value.items():
        if name not in attributes:
            yield f"{place}: no field {name}"
        else:
            yield from compare_named(inner, model.openapi_types[attributes[name]], f"{place}.{name}")
    try:  # refuses what is required and missing, and values out of range
        model(**{attributes[name]: inner for name, inner in value.items() if name in attributes})
    except ValueError as error:
        yield f"{place}: {error}"
