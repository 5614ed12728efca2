// The package carries the repository's own licence and notice; one copy of each is kept, at the root.
import { copyFileSync } from 'node:fs';

for (const name of ['LICENSE-APACHE', 'NOTICE']) {
  copyFileSync(new URL(`../../${name}`, import.meta.url), new URL(`../${name}`, import.meta.url));
}
