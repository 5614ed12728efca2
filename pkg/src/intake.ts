import type { EmbedderObject, EmbedGlue, Intakes, PackLoaderObject } from './embedder.js';
import { ForemindError } from './errors.js';

/** What a model file must be; what is absent is not checked. */
export interface ModelPin {
  bytes?: number;
  /** BLAKE3 of the file's header, in hexadecimal. The header holds the hashes of all that follows. */
  hash?: string;
}

// The fixed part of the header: see `pack` in crates/foremind-embed.
const MAGIC = [0x66, 0x6d, 0x70, 0x61, 0x63, 0x6b, 0x0d, 0x0a];
const FIXED_BYTES = 24;
const SECTIONS_AT = 10;
const MODEL_ID_LENGTH_AT = 12;
const FILE_LENGTH_AT = 16;
const ROW_BYTES = 52;
const HASH_BYTES = 32;
/** No model of a sentence encoder comes near; an altered length must not allocate what it says. */
const FILE_BYTES_MAX = 512 * 1024 * 1024;

/**
 * Passes a model file on to the module as it comes, so that the file is never whole in JavaScript. The module checks
 * every byte against the header; this class checks the header against the pin.
 */
export class PackIntake {
  readonly #glue: EmbedGlue;
  readonly #pin: ModelPin;
  /** What came before the header was complete. */
  #start: Uint8Array = new Uint8Array(0);
  #loader: PackLoaderObject | undefined;

  constructor(glue: EmbedGlue, pin: ModelPin) {
    this.#glue = glue;
    this.#pin = pin;
  }

  /** Takes the next bytes; they may be reused afterwards. Throws `model-invalid` or `newer-format` as soon as they
   * cannot be right. */
  push(chunk: Uint8Array): void {
    if (this.#loader) {
      this.#loader.push(chunk);
      return;
    }
    this.#start = joined(this.#start, chunk);
    const header = readHeader(this.#start);
    if (header === 'incomplete') return;
    // What is no model file, or a length that cannot be, is described by the module, which has the words for it.
    const bytes = header === 'foreign' ? this.#start.length : header.bytes;
    if (header !== 'foreign') this.#check(header);
    this.#loader = this.#glue.loader(bytes);
    this.#loader.push(this.#start);
    this.#start = new Uint8Array(0);
  }

  finish(): EmbedderObject {
    if (!this.#loader) {
      this.#loader = this.#glue.loader(this.#start.length);
      this.#loader.push(this.#start);
    }
    const loader = this.#loader;
    // Whatever comes of it, the module has taken the loader.
    this.#loader = undefined;
    return loader.finish();
  }

  /** Gives back what has come so far. */
  drop(): void {
    this.#loader?.free();
    this.#loader = undefined;
  }

  #check({ bytes, hash }: { bytes: number; hash: string }): void {
    if (bytes > FILE_BYTES_MAX) {
      throw new ForemindError('model-invalid', `the model file's header claims ${bytes} bytes; it is altered`);
    }
    const { bytes: bytesExpected = bytes, hash: hashExpected = hash } = this.#pin;
    if (bytes !== bytesExpected || hash !== hashExpected) {
      throw new ForemindError(
        'model-invalid',
        `this is another model file: ${bytesExpected} bytes with hash ${hashExpected.slice(0, 16)}.. expected, ` +
          `${bytes} bytes with hash ${hash.slice(0, 16)}.. found`,
      );
    }
  }
}

/** A model file that is there already. */
export async function takeWhole(pack: Uint8Array, intakes: Intakes): Promise<EmbedderObject> {
  const intake = await intakes.open({});
  try {
    intake.push(pack);
    return intake.finish();
  } catch (error) {
    intake.drop();
    throw error;
  }
}

export function fromOnnx(glue: EmbedGlue, id: string, vocabulary: Uint8Array, onnx: Uint8Array): EmbedderObject {
  if (!glue.fromOnnx) throw new ForemindError('invalid-argument', "this build does not run ONNX files; the entry foremind/onnx does");
  return glue.fromOnnx(id, vocabulary, onnx);
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  if (a.length === 0) return b.slice();
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

function readHeader(start: Uint8Array): 'incomplete' | 'foreign' | { bytes: number; hash: string } {
  if (MAGIC.some((byte, at) => at < start.length && start[at] !== byte)) return 'foreign';
  if (start.length < FIXED_BYTES) return 'incomplete';
  const view = new DataView(start.buffer, start.byteOffset, start.length);
  const hashAt = FIXED_BYTES + view.getUint16(MODEL_ID_LENGTH_AT, true) + ROW_BYTES * view.getUint16(SECTIONS_AT, true);
  if (start.length < hashAt + HASH_BYTES) return 'incomplete';
  const hash = Array.from(start.subarray(hashAt, hashAt + HASH_BYTES), (byte) => byte.toString(16).padStart(2, '0')).join('');
  return { bytes: Number(view.getBigUint64(FILE_LENGTH_AT, true)), hash };
}
