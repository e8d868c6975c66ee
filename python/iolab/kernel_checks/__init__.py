"""The running kernel beside the simulator, workload by workload.

`rows` lists the workloads, `facts` reads what a trace holds, `compared` says how close two of them
are. What runs them on both sides is `iolab.library.against_kernel`.
"""
