import type { CoreWrap } from './core.js';
import { ForemindError } from './errors.js';

/** Who keeps the secret that wraps a memory's data key. */
export interface Keys {
  /** What the core is told. With `external` it asks `unwrap` and `wrap`, otherwise it does both by itself. */
  readonly wrap: CoreWrap;
  /** The data key in the clear; the caller zeroes it. */
  open?(wrapped: Uint8Array): Promise<Uint8Array>;
  /** Wraps a data key, of which the caller zeroes its copy. */
  seal?(dataKey: Uint8Array): Promise<Uint8Array>;
  /** Zeroes what can be zeroed. Nothing may be asked afterwards. */
  clear(): void;
}

/** Bytes of a host key, and of a data key. */
export const KEY_BYTES = 32;
/** The most bytes of a passphrase, in UTF-8. */
export const PASSPHRASE_BYTES = 1024;

/** The host's own 32 bytes. */
export class HostKey implements Keys {
  readonly wrap: { wrap: 'host'; key: Uint8Array };

  constructor(key: Uint8Array) {
    this.wrap = { wrap: 'host', key: new Uint8Array(key) };
  }

  clear(): void {
    this.wrap.key.fill(0);
  }
}

/** Words of a person; the core stretches them (Argon2id). */
export class PassphraseKey implements Keys {
  readonly wrap: CoreWrap;

  /** In Unicode's normalisation form C, since keyboards differ in how they compose a letter. */
  constructor(passphrase: string) {
    this.wrap = { wrap: 'passphrase', passphrase: passphrase.normalize('NFC') };
  }

  /** A string of JavaScript cannot be zeroed. */
  clear(): void {}
}

const KEY_DATABASE = 'foremind-device-keys';
const IV_BYTES = 12;
const BLOB_VERSION = 1;

/**
 * A non-extractable AES-GCM key that only this browser profile can use, kept in IndexedDB, one for each
 * memory. Protects copies of the database that leave the profile; not against the origin's own scripts.
 *
 * The wrapped form is one version byte, the 12-byte nonce, then ciphertext and tag (NIST SP 800-38D).
 */
export class DeviceKey implements Keys {
  readonly wrap: CoreWrap = { wrap: 'external' };
  readonly #name: string;
  readonly #early: Promise<CryptoKey | undefined>;

  constructor(name: string) {
    if (typeof indexedDB === 'undefined' || !globalThis.crypto?.subtle) {
      throw new ForemindError(
        'unsupported',
        'a device key needs IndexedDB and a secure context (https or localhost); serve the page securely, or pass `key`',
      );
    }
    this.#name = name;
    // Looked for while the memory's own database opens.
    this.#early = this.#find();
    this.#early.catch(() => {});
  }

  async open(wrapped: Uint8Array): Promise<Uint8Array> {
    const key = (await this.#early) ?? (await this.#find());
    if (!key) {
      throw new ForemindError(
        'key-missing',
        'the device key of this memory is gone from the browser profile; what is stored cannot be read without it',
      );
    }
    if (wrapped[0] !== BLOB_VERSION || wrapped.length <= 1 + IV_BYTES) {
      throw new ForemindError('corrupt', 'the wrapped key of this memory is damaged');
    }
    const iv = wrapped.slice(1, 1 + IV_BYTES);
    try {
      const clear = await crypto.subtle.decrypt(this.#algorithm(iv), key, wrapped.slice(1 + IV_BYTES));
      return new Uint8Array(clear);
    } catch {
      throw new ForemindError('wrong-key', 'the device key of this browser profile does not open this memory');
    }
  }

  async seal(dataKey: Uint8Array): Promise<Uint8Array> {
    const key = (await this.#find()) ?? (await this.#create());
    const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
    const copy = new Uint8Array(dataKey);
    try {
      const sealed = await crypto.subtle.encrypt(this.#algorithm(iv), key, copy);
      return Uint8Array.of(BLOB_VERSION, ...iv, ...new Uint8Array(sealed));
    } finally {
      copy.fill(0);
    }
  }

  /** The key itself never was in JavaScript's memory. */
  clear(): void {}

  /** The name is bound in, so that the key of one memory is not accepted as that of another. */
  #algorithm(iv: Uint8Array<ArrayBuffer>): AesGcmParams {
    return { name: 'AES-GCM', iv, additionalData: new TextEncoder().encode(`foremind device key 1 ${this.#name}`) };
  }

  async #find(): Promise<CryptoKey | undefined> {
    return withKeyDatabase('readonly', (keys) => keys.get(this.#name));
  }

  /** Two tabs may race: the first to add wins, and both use what is stored. */
  async #create(): Promise<CryptoKey> {
    const fresh = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt']);
    await withKeyDatabase('readwrite', (keys) => {
      const present = keys.get(this.#name);
      present.onsuccess = () => {
        if (present.result !== undefined) return;
        try {
          keys.put(fresh, this.#name);
        } catch {
          // DataCloneError: this browser holds no CryptoKey. The transaction goes on without effect, and the
          // look-up below finds nothing.
        }
      };
      return present;
    });
    const stored = await this.#find();
    if (!stored) throw new ForemindError('unsupported', 'this browser cannot store a device key (private mode?); pass `key`');
    return stored;
  }
}

/** Runs one transaction and closes the database again, so that nothing here ever blocks a deletion. */
function withKeyDatabase(
  mode: IDBTransactionMode,
  work: (keys: IDBObjectStore) => IDBRequest<CryptoKey | undefined>,
): Promise<CryptoKey | undefined> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => {
      const name = error instanceof DOMException ? error.name : '';
      reject(
        name === 'QuotaExceededError'
          ? new ForemindError('quota-exceeded', 'there is no room for the device key; free some space and try again')
          : new ForemindError('storage-denied', 'the browser refuses to store the device key (private mode, or storage is blocked)'),
      );
    };
    let open: IDBOpenDBRequest;
    try {
      open = indexedDB.open(KEY_DATABASE, 1);
    } catch (error) {
      fail(error);
      return;
    }
    open.onupgradeneeded = () => open.result.createObjectStore('keys');
    open.onerror = () => fail(open.error);
    open.onblocked = () => fail(undefined);
    open.onsuccess = () => {
      const database = open.result;
      try {
        const transaction = database.transaction('keys', mode, { durability: 'strict' });
        const request = work(transaction.objectStore('keys'));
        transaction.oncomplete = () => {
          database.close();
          resolve(request.result);
        };
        transaction.onabort = () => {
          database.close();
          fail(transaction.error);
        };
      } catch (error) {
        database.close();
        fail(error);
      }
    };
  });
}
