//! How the binary is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // At a fixed address: otherwise the loader writes 60,000 addresses into 240 pages at each
    // start, which costs as much as judging a request does.
    if cfg!(target_os = "linux") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
