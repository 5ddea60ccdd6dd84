//! Saved state of a run.

use millrace_state::{Front, State};
use sha2::{Digest, Sha256};

/// Reads the bytes as a file, and then as the body of one whose length and checksum are right. What is read can be written
/// and read again.
pub fn run(data: &[u8]) {
    let _ = Front::read(data, data.len() as u64);
    let _ = State::read(data);
    let version = millrace_state::VERSION.to_le_bytes();
    let length = (data.len() as u64).to_le_bytes();
    let front = [&b"millrace"[..], &version, &length].concat();
    let sealed = [front.as_slice(), &Sha256::digest(data), data].concat();
    let first = sealed.get(..Front::MOST).unwrap_or(&sealed);
    let front = Front::read(first, sealed.len() as u64);
    let Ok(state) = State::read(&sealed) else {
        return;
    };
    if let Ok(front) = front {
        assert_eq!(
            (front.seed, front.workers, front.steering),
            (state.seed, state.numbers.len(), state.steering.clone())
        );
    }
    for object in state.elements.iter().flat_map(|e| &e.objects) {
        for part in &object.parts {
            let pieces = part.pieces(object.identity.form());
            assert!(pieces.count() <= part.as_bytes().len() + 1);
        }
    }
    let mut again = Vec::new();
    assert!(state.write(&mut again).is_ok());
    assert_eq!(State::read(&again), Ok(state));
}
