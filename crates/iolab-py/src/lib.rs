//! The private extension module `iolab._core`: glue only, one file per exposed group of functions.

mod books;
mod dialect;
mod error;
mod histogram;
mod import_config;
mod mechanism;
mod pattern;
mod refusals;
mod run;
mod schema;
mod simulate;
mod simulated_data;
mod simulated_trace;
mod trace;
mod trace_ring;
mod workload;

use pyo3::prelude::*;

/// The module; its documentation is in `_core.pyi`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(workload::iozone_workload, module)?)?;
    module.add_function(wrap_pyfunction!(workload::mixed_workload, module)?)?;
    module.add_function(wrap_pyfunction!(workload::workload_operations, module)?)?;
    module.add_function(wrap_pyfunction!(workload::workload_file_uses, module)?)?;
    module.add_function(wrap_pyfunction!(workload::iozone_tests, module)?)?;
    module.add_function(wrap_pyfunction!(workload::patterns, module)?)?;
    module.add_function(wrap_pyfunction!(histogram::histogram_quantiles, module)?)?;
    module.add_function(wrap_pyfunction!(run::run_in_process, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::sim_stack, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::sim_profile_stack, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::sim_describe, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::sim_knobs, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::sim_refusals, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::sim_limits, module)?)?;
    module.add_function(wrap_pyfunction!(refusals::workload_refusals, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate_trial, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::sim_trace, module)?)?;
    module.add_function(wrap_pyfunction!(books::sim_knob_names, module)?)?;
    module.add_function(wrap_pyfunction!(books::sim_profile_names, module)?)?;
    module.add_function(wrap_pyfunction!(books::sim_profile, module)?)?;
    module.add_function(wrap_pyfunction!(books::sim_software_names, module)?)?;
    module.add_function(wrap_pyfunction!(books::sim_software, module)?)?;
    module.add_function(wrap_pyfunction!(books::sim_schedulers, module)?)?;
    module.add_function(wrap_pyfunction!(books::sim_scenarios, module)?)?;
    module.add_function(wrap_pyfunction!(books::sim_predict, module)?)?;
    module.add_function(wrap_pyfunction!(books::sim_probe, module)?)?;
    module.add_function(wrap_pyfunction!(books::sim_replay, module)?)?;
    module.add_function(wrap_pyfunction!(workload::workload_demand, module)?)?;
    module.add_function(wrap_pyfunction!(workload::workload_file, module)?)?;
    module.add_function(wrap_pyfunction!(workload::workload_file_anchored, module)?)?;
    module.add_function(wrap_pyfunction!(workload::recording_identity, module)?)?;
    module.add_function(wrap_pyfunction!(dialect::dialects, module)?)?;
    module.add_function(wrap_pyfunction!(dialect::dialect_parse, module)?)?;
    module.add_function(wrap_pyfunction!(dialect::dialect_render, module)?)?;
    module.add_function(wrap_pyfunction!(dialect::dialect_file, module)?)?;
    module.add_function(wrap_pyfunction!(dialect::dialect_help, module)?)?;
    module.add_function(wrap_pyfunction!(dialect::dialect_reference, module)?)?;
    module.add_function(wrap_pyfunction!(pattern::pattern_calls, module)?)?;
    module.add_function(wrap_pyfunction!(pattern::pattern_of, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_formats, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_show, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_convert, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_output_of, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_column_kinds, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_columns, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_stages, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_diff, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_plot, module)?)?;
    module.add_function(wrap_pyfunction!(import_config::sim_import_config, module)?)?;
    module.add_function(wrap_pyfunction!(schema::extension_schema, module)?)?;
    module.add_function(wrap_pyfunction!(trace_ring::trace_ring_pages, module)?)?;
    module.add_function(wrap_pyfunction!(trace_ring::trace_perf_ring, module)?)?;
    Ok(())
}
