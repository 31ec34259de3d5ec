"""HLO modules compiled and executed by XLA on simulated CPU devices.

XLA is a second opinion, not an oracle: its algebraic simplifier is unsound in some releases (nested dynamic slices), so it is off. A program runs as one
partition with a replica for each device, because XLA cannot be given a partitioned module without its own partitioner.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

DEVICES = 8

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES} --xla_disable_hlo_passes=algsimp"


if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[Any]

# By name: jax is an extra, and its types are not needed.
jax: Any = import_module("jax")
_hlo: Any = import_module("jaxlib._hlo")
xla_client: Any = import_module("jaxlib.xla_client")

jax.config.update("jax_enable_x64", True)


def execute(text: str, inputs: Sequence[Array], types: Sequence[str], devices: int) -> list[Array]:
    """The results ``[devices, *dims]`` of a module in HLO text; ``types`` are NumPy's (or ml_dtypes') names of the inputs' element types."""
    client = jax.devices("cpu")[0].client
    local = client.local_devices()[:devices]
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = devices, 1
    program = xla_client._xla.mlir.hlo_to_stablehlo(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    executable = client.compile_and_load(program, xla_client.DeviceList(tuple(local)), options)
    given = [_sharded(np.asarray(x).astype(jax.numpy.dtype(t)), local) for x, t in zip(inputs, types, strict=True)]
    results = executable.execute_sharded(given).disassemble_into_single_device_arrays()
    return [np.stack([_wide(np.asarray(part)) for part in parts]) for parts in results]


def _sharded(x: Array, devices: Sequence[Any]) -> Any:
    """One array whose shard on each device is its row."""
    mesh = jax.sharding.Mesh(np.array(devices), ("device",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("device"))
    parts = [jax.device_put(row[None], device) for row, device in zip(x, devices, strict=True)]
    return jax.make_array_from_single_device_arrays(x.shape, sharding, parts)


def _wide(x: Array) -> Array:
    """Types that NumPy itself does not have, in wider ones."""
    wider = {"bfloat16": np.float32, "int4": np.int8, "uint4": np.uint8}
    return x.astype(wider[x.dtype.name]) if x.dtype.name in wider else x
