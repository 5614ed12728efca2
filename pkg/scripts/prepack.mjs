// The package carries the repository's own README, licences and notice; one copy of each is kept, at the root.
import { copyFileSync } from 'node:fs';

for (const name of ['README.md', 'LICENSE-APACHE', 'LICENSE-MIT', 'NOTICE']) {
  copyFileSync(new URL(`../../${name}`, import.meta.url), new URL(`../${name}`, import.meta.url));
}
