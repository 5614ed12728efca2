// What installing the package does: nothing but putting files down.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

const manifest = async (folder) => JSON.parse(await readFile(new URL(`${folder}/package.json`, import.meta.url), 'utf8'));
/** Scripts that a package client runs when somebody installs or removes a package (`prepare` where it comes from a repository). */
const onInstall = ['preinstall', 'install', 'postinstall', 'prepublish', 'preprepare', 'prepare', 'postprepare', 'preuninstall', 'uninstall', 'postuninstall'];

for (const folder of ['..', '../../pkg-model']) {
  test(`the package of ${folder} runs nothing when it is installed and brings nothing along`, async () => {
    const { scripts = {}, dependencies = {}, optionalDependencies = {}, bundleDependencies = [], gypfile } = await manifest(folder);
    assert.deepEqual(Object.keys(scripts).filter((name) => onInstall.includes(name)), []);
    assert.deepEqual({ ...dependencies, ...optionalDependencies }, {});
    assert.deepEqual(bundleDependencies, []);
    assert.equal(gypfile, undefined);
  });
}
