# Directories are made until all are there.
set $dir=/tmp
set $ndirs=10000
set $meandirwidth=100
set $nthreads=16
set mode quit firstdone

define fileset name=tree,path=$dir,size=0,leafdirs=$ndirs,dirwidth=$meandirwidth

define process name=worker
{
  thread name=worker,memsize=1m,instances=$nthreads
  {
    flowop makedir name=makedir-one,filesetname=tree
  }
}
run
