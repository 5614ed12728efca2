//! One memory: engine and vault behind one step protocol that every host drives.
