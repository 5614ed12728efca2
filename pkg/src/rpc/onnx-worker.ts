import { onnxEmbed } from '../browser-onnx.js';
import { partsWith } from '../browser-parts.js';
import { serveMemory } from './serve.js';

serveMemory(partsWith(onnxEmbed));
