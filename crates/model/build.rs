//! Names this version of what makes models.

use std::path::PathBuf;

#[path = "../object/sources.rs"]
mod sources;

fn main() {
    let top =
        PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    let version = sources::version(&top, &["object", "check", "model"]);
    println!("cargo::rustc-env=MILLRACE_MODELLER={version:016x}");
}
