import { onnxEmbed } from './browser-onnx.js';
import { serveEncoder } from './rpc/encoder-serve.js';

serveEncoder(onnxEmbed);
