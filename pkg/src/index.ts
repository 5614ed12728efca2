// Where the environment is neither a browser nor node by its bundler's conditions, the browser's entry serves:
// it uses what it finds, and says what it lacks.
export * from './browser.js';
