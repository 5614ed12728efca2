import { onnxEmbed } from '../browser-onnx.js';
import { serveEncoder } from './encoder-serve.js';

serveEncoder(onnxEmbed);
