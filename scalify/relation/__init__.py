"""How each distributed parameter and result is cut from one of the baseline: the language of relation files.

A file is YAML with the keys ``version`` (1), ``mesh`` (axes in order; a position is row-major over them), ``device_ids`` (the device at each
position, default 0, 1, ...), ``baseline_mesh: same``, ``inputs``, ``outputs``, ``assume`` and ``sizes``. An entry of ``inputs`` or ``outputs`` is one of:

- a cut: ``baseline``, ``distributed`` (numbers or names) and at most one of

  - ``spec``: for each dimension ``null``, a mesh axis, or a list of axes, major to minor;
  - ``map``: ``"(kv d) h -> [tp=(kv rep)] d h"``, see :mod:`scalify.relation.einops`;
  - ``steps``: a list of ``{map | spec, pad}`` one after the other. One step cuts over the mesh: that with brackets or spec, else the last;
    steps after it work on each device. A factor name that a step cannot settle has the size that it has in another step.

  With none of them the array is whole on each device. ``pad`` puts zeros ``[low, high]`` around dimensions (numbers; before the split into
  factors) and factors (names; after it; the size right of the arrow includes them). ``baseline_slice`` and ``distributed_slice`` restrict an entry to
  ``{dimension: [start, limit]}`` of either side; the pieces of a distributed array must tile it.
- known data of a parameter of either side: ``value`` (nested lists in the shape of the parameter, or a scalar that fills it), ``per_device`` (a list by
  position), ``device_index`` (an axis or a list of axes, major to minor). Numbers are rounded to the parameter's type.
- ``ignore: true`` for a result that is not compared.

With several distributed modules (one for each device: module ``i`` runs on device ``i``; or one for each stage along the leading axes) ``distributed`` may be
a list with a number for each module, null where it has none, and ``module: i`` restricts an entry to one. With ``baseline_mesh: same`` the
baseline runs on the mesh too, and entries relate device by device.

``sizes`` fixes factors for the whole file, in the size right of the arrow; other factor names are local to their entry.
"""
