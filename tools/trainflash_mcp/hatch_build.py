"""The one dependency: trainflash of the checkout that this folder lies in, so that no other package of that name is ever fetched."""

from __future__ import annotations

from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Checkout(MetadataHookInterface):
    """Fills in `dependencies`."""

    def update(self, metadata: dict) -> None:
        """Name the checkout two folders up; outside of one, the package."""
        checkout = Path(self.root).resolve().parents[1]
        inside = (checkout / "src" / "trainflash").is_dir()
        metadata["dependencies"] = [f"trainflash @ {checkout.as_uri()}" if inside else "trainflash"]
