//! The headers of a program that is to be hosted.

use millrace_guest::headers::Headers;

/// Reads `data` as the beginning of a program, alone and as a part of a larger file.
pub fn run(data: &[u8]) {
    for length in [data.len() as u64, u64::MAX] {
        match Headers::read(data, length) {
            Ok(headers) => drop(headers.loader().map(std::path::Path::to_owned)),
            Err((what, help)) => assert!(!what.is_empty() && !help.is_empty()),
        }
    }
}
