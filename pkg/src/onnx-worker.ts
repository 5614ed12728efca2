import { onnxEmbed } from './browser-onnx.js';
import { partsWith } from './browser-parts.js';
import { serveMemory } from './rpc/serve.js';

serveMemory((core) => partsWith(onnxEmbed, core));
