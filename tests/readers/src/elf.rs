//! A whole object file.

/// Loads `data` as an object file, and prints the program if it is one.
pub fn run(data: &[u8]) {
    match millrace_object::load(data, "fuzz") {
        Ok(program) => drop(program.to_string()),
        Err(error) => drop(error.to_string()),
    }
}
