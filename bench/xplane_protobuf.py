"""XPlane read with the protobuf library, every event and stat looked at: the control of `profile_decode.py`."""

from __future__ import annotations

from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

INT64, UINT64, DOUBLE, STRING, BYTES, MESSAGE = 3, 4, 1, 9, 12, 11
# Message → (field, number, type, message's name, repeated), as far as events and their stats need it.
MESSAGES = {
    "XSpace": (("planes", 1, MESSAGE, "XPlane", True),),
    "XPlane": (("name", 2, STRING, None, False), ("lines", 3, MESSAGE, "XLine", True)),
    "XLine": (("id", 1, INT64, None, False), ("name", 2, STRING, None, False), ("timestamp_ns", 3, INT64, None, False),
              ("events", 4, MESSAGE, "XEvent", True)),
    "XEvent": (("metadata_id", 1, INT64, None, False), ("offset_ps", 2, INT64, None, False), ("duration_ps", 3, INT64, None, False),
               ("stats", 4, MESSAGE, "XStat", True)),
    "XStat": (("metadata_id", 1, INT64, None, False), ("double_value", 2, DOUBLE, None, False), ("uint64_value", 3, UINT64, None, False),
              ("int64_value", 4, INT64, None, False), ("str_value", 5, STRING, None, False), ("bytes_value", 6, BYTES, None, False),
              ("ref_value", 7, UINT64, None, False)),
}  # fmt: skip


def read_all(path: Path) -> int:
    """How many events; every time and stat is taken into Python."""
    space = _space_class()()
    space.ParseFromString(path.read_bytes())
    events = 0
    for plane in space.planes:
        for line in plane.lines:
            columns = []
            for event in line.events:
                stats = [(stat.metadata_id, stat.uint64_value or stat.int64_value or stat.ref_value) for stat in event.stats]
                columns.append((event.metadata_id, event.offset_ps, event.duration_ps, stats))
            events += len(columns)
    return events


def _space_class() -> type:
    file = descriptor_pb2.FileDescriptorProto(name="xplane.proto", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, of, repeated in fields:
            message.field.add(name=field, number=number, type=kind, label=3 if repeated else 1, type_name=f".{of}" if of else None)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("XSpace"))
