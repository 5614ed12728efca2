"""The two files that `cargo xtask bench embed` compares with, made from the f32 checkpoint.

    python onnx_baselines.py FOLDER

FOLDER holds `model.onnx` (the graph, with 8-bit weights) and `model.safetensors` (the f32 weights). Written beside them:

- `minilm-f32.onnx`: the same graph with the f32 weights, the reference of fidelity;
- `minilm-dynamic-int8.onnx`: that one with onnxruntime's dynamic quantisation, its fastest form for a processor.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

# A rounded weight is at most half a step from the one it was made from, and a little for the arithmetic.
ERROR_MAX_STEPS = 0.51


def checkpoint(path: Path) -> dict[str, np.ndarray]:
    """Matrices of a safetensors file: u64 length, JSON header, numbers."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    matrices = {}
    for name, tensor in header.items():
        if tensor.get("dtype") == "F32" and len(tensor["shape"]) == 2:
            begin, end = (8 + length + offset for offset in tensor["data_offsets"])
            matrices[name] = np.frombuffer(data[begin:end], "<f4").reshape(tensor["shape"])
    return matrices


def with_f32_weights(model: onnx.ModelProto, matrices: dict[str, np.ndarray]) -> onnx.ModelProto:
    """Replaces each `Cast(q) * scale` by the matrix that it was quantised from, found by its values."""
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    makers = {node.output[0]: node for node in graph.node}
    candidates = [m if "embeddings" in name else m.T for name, m in matrices.items()]
    replaced, dropped_nodes, dropped_constants = [], set(), set()
    for node in graph.node:
        if node.op_type != "Mul" or node.input[1] not in constants:
            continue
        cast = makers.get(node.input[0])
        if cast is None or cast.op_type != "Cast" or cast.input[0] not in constants:
            continue
        scale = numpy_helper.to_array(constants[node.input[1]])
        dequantised = numpy_helper.to_array(constants[cast.input[0]]).astype(np.float32) * scale
        same_shape = [m for m in candidates if m.shape == dequantised.shape]
        best = min(same_shape, key=lambda m: float(np.abs(dequantised - m).max()))
        error = float(np.abs(dequantised - best).max())
        if error > ERROR_MAX_STEPS * float(np.abs(scale).max()):
            sys.exit(f"{node.output[0]}: the nearest matrix of the checkpoint is {error} away")
        replaced.append(numpy_helper.from_array(np.ascontiguousarray(best), node.output[0]))
        dropped_nodes |= {node.output[0], cast.output[0]}
        dropped_constants |= {cast.input[0], node.input[1]}
    if len(replaced) < 37:
        sys.exit(f"{len(replaced)} matrices replaced, 37 expected")
    nodes = [node for node in graph.node if node.output[0] not in dropped_nodes]
    kept = [tensor for tensor in graph.initializer if tensor.name not in dropped_constants]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(kept + replaced)
    onnx.checker.check_model(model)
    return model


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: onnx_baselines.py FOLDER")
    folder = Path(sys.argv[1])
    f32 = folder / "minilm-f32.onnx"
    onnx.save(with_f32_weights(onnx.load(folder / "model.onnx"), checkpoint(folder / "model.safetensors")), f32)
    quantize_dynamic(f32, folder / "minilm-dynamic-int8.onnx", weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)


if __name__ == "__main__":
    main()
