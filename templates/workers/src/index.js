// The whole Worker: see docs/SERVICE.md for its routes and its configuration.
export { DirectoryObject, MemoryObject, worker as default } from 'foremind/workers';
