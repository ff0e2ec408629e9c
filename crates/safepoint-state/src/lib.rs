//! The way back: exact snapshots of files and git state, and what is done with them.
