//! Prints the schema of everything that crosses: `cargo run -p iolab-protocol --example schema`.

fn main() {
    println!("{}", iolab_protocol::schema::text());
}
