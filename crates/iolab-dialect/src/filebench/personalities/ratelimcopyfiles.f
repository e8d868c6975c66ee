# Files are copied at a rate, until all are.
set $dir=/tmp
set $nfiles=1000
set $dirwidth=20
set $filesize=16k
set $iosize=1m
set $nthreads=1
set $eventrate=10
eventgen rate=$eventrate
set mode quit firstdone

define fileset name=sources,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$dirwidth,prealloc=100,paralloc
define fileset name=copies,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$dirwidth

define process name=copier
{
  thread name=copier,memsize=10m,instances=$nthreads
  {
    flowop openfile name=open-source,filesetname=sources,fd=1
    flowop readwholefile name=read-source,fd=1,iosize=$iosize
    flowop createfile name=create-copy,filesetname=copies,fd=2
    flowop writewholefile name=write-copy,fd=2,srcfd=1,iosize=$iosize
    flowop closefile name=close-source,fd=1
    flowop closefile name=close-copy,fd=2
    flowop iopslimit name=limit-writes,target=write-copy
  }
}
run
