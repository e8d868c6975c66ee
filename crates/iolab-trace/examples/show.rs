//! Shows blktrace files.
use iolab_trace::{
    Input,
    show::{Show, show},
};
use std::io::Write;
fn main() {
    let inputs = std::env::args()
        .skip(1)
        .map(|p| Input::new(p.clone(), std::fs::File::open(p).unwrap()))
        .collect();
    let mut source = iolab_trace::format::blktrace::Reader::of_inputs(inputs).unwrap();
    let mut out = std::io::stdout();
    show(&mut source, &Show::default(), &mut |t| {
        out.write_all(t).unwrap();
        Ok(())
    })
    .unwrap();
}
