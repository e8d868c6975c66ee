//! Stages of blktrace files.
use iolab_trace::{
    Input,
    stages::{By, Pairing, Report, Rules, btt, text},
};
fn main() {
    let inputs = std::env::args()
        .skip(1)
        .map(|p| Input::new(p.clone(), std::fs::File::open(p).unwrap()))
        .collect();
    let mut source = iolab_trace::format::blktrace::Reader::of_inputs(inputs).unwrap();
    if std::env::var("BTT").is_ok() {
        let p = Pairing::of(&mut source, Rules::Btt, By::Process).unwrap();
        print!("{}", btt::text(&p, true));
    } else {
        let p = Pairing::of(&mut source, Rules::Own, By::Process).unwrap();
        print!("{}", text::stages(&Report::of(&p)));
    }
}
