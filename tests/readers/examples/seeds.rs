//! Writes the seeds of every reader into FOLDER/READER, for `scripts/fuzz.sh`: seeds FOLDER, from the repository's root.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err(std::io::Error::other("usage: seeds FOLDER"));
    };
    for reader in millrace_readers::READERS {
        let corpus = folder.join(reader.name);
        std::fs::create_dir_all(&corpus)?;
        for (name, bytes) in millrace_readers::seeds::of(reader.name, ".".as_ref())? {
            std::fs::write(corpus.join(name), bytes)?;
        }
    }
    Ok(())
}
