import { shippedEmbed } from '../browser-embed.js';
import { serveEncoder } from './encoder-serve.js';

serveEncoder(shippedEmbed);
