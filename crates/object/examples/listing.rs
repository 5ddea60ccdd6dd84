//! Prints what an object file says: `cargo run -p millrace-object --example listing -- FILE…`
fn main() -> std::process::ExitCode {
    let mut code = std::process::ExitCode::SUCCESS;
    for path in std::env::args_os().skip(1) {
        match millrace_object::load_file(path.as_ref()) {
            Ok(program) => print!("{program}"),
            Err(error) => {
                eprintln!("{error}");
                code = std::process::ExitCode::from(2);
            }
        }
    }
    code
}
