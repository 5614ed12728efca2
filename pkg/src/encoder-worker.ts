import { shippedEmbed } from './browser-embed.js';
import { serveEncoder } from './rpc/encoder-serve.js';

serveEncoder(shippedEmbed);
