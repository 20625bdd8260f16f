"""The names of instruments in Prometheus."""

from typing import assert_never

from lamina.core.metrics import Instrument, InstrumentKind

PREFIX = "ray_"


def exported_names(instrument: Instrument) -> tuple[str, ...]:
    """Return the names under which Ray hands an instrument to Prometheus."""
    name = f"{PREFIX}{instrument.name}"
    match instrument.kind:
        case InstrumentKind.COUNTER:
            return (f"{name}_total",)
        case InstrumentKind.GAUGE:
            return (name,)
        case InstrumentKind.HISTOGRAM:
            return (f"{name}_bucket", f"{name}_count", f"{name}_sum")
        case _ as other:
            assert_never(other)
