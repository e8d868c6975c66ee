# Directories are removed until none is left.
set $dir=/tmp
set $ndirs=10000
set $meandirwidth=100
set $nthreads=16
set mode quit firstdone

define fileset name=tree,path=$dir,size=0,leafdirs=$ndirs,dirwidth=$meandirwidth,prealloc

define process name=worker
{
  thread name=worker,memsize=1m,instances=$nthreads
  {
    flowop removedir name=removedir-one,filesetname=tree
  }
}
run
