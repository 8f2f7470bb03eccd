//! The `perigee` binary: command line, then `server::boot`.
use perigee::config::cli::{self, Invocation};

#[global_allocator]
static ALLOCATOR: perigee::rt::sys::Allocator = perigee::rt::sys::Allocator;

fn main() {
    let invocation = cli::parse(std::env::args_os().skip(1));
    let failed = match invocation {
        Ok(Invocation::Print(text)) => {
            println!("{text}");
            None
        }
        Ok(Invocation::Run { settings, config_file, .. }) => {
            perigee::server::boot::run(settings, config_file).err()
        }
        Err(error) => Some(error),
    };
    if let Some(error) = failed {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
