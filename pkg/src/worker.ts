import { shippedEmbed } from './browser-embed.js';
import { partsWith } from './browser-parts.js';
import { serveMemory } from './rpc/serve.js';

serveMemory((core) => partsWith(shippedEmbed, core));
