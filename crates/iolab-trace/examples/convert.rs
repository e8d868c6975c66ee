//! Converts a trace: output format, then input files; to standard output.
use iolab_trace::{Input, convert::convert, format, source::Facts};
use std::io::Write;
fn main() {
    let mut words = std::env::args().skip(1);
    let output = words.next().unwrap().parse().unwrap();
    let inputs = words.map(|p| Input::new(p.clone(), std::fs::File::open(p).unwrap())).collect();
    let (_, mut source) = format::open(inputs).unwrap();
    let mut out = std::io::stdout();
    let done = convert(&mut *source, output, &Facts::new(), &mut |t| {
        out.write_all(t).unwrap();
        Ok(())
    });
    eprintln!("{:?} {:?}", done.unwrap(), source.caveats());
}
