# Web proxy: a cached object is replaced, five are read.
set $dir=/tmp
set $nfiles=10000
set $meandirwidth=1000000
set $meanfilesize=16k
set $nthreads=100
set $meaniosize=16k
set $iosize=1m
set $eventrate=0
set $runtime=60

eventgen rate=$eventrate

define fileset name=objects,path=$dir,size=$meanfilesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80

define process name=proxy
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop deletefile name=delete-old,filesetname=objects
    flowop createfile name=create-new,filesetname=objects,fd=1
    flowop appendfilerand name=write-new,iosize=$meaniosize,fd=1
    flowop closefile name=close-new,fd=1
    flowop openfile name=open-1,filesetname=objects,fd=1
    flowop readwholefile name=read-1,fd=1,iosize=$iosize
    flowop closefile name=close-1,fd=1
    flowop openfile name=open-2,filesetname=objects,fd=1
    flowop readwholefile name=read-2,fd=1,iosize=$iosize
    flowop closefile name=close-2,fd=1
    flowop openfile name=open-3,filesetname=objects,fd=1
    flowop readwholefile name=read-3,fd=1,iosize=$iosize
    flowop closefile name=close-3,fd=1
    flowop openfile name=open-4,filesetname=objects,fd=1
    flowop readwholefile name=read-4,fd=1,iosize=$iosize
    flowop closefile name=close-4,fd=1
    flowop openfile name=open-5,filesetname=objects,fd=1
    flowop readwholefile name=read-5,fd=1,iosize=$iosize
    flowop closefile name=close-5,fd=1
    flowop opslimit name=limit-ops
  }
}
run $runtime
