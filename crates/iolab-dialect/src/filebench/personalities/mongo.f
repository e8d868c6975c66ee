# Document store: a file is extended, another one read, a third one removed.
set $dir=/tmp
set $nfiles=1000
set $dirwidth=20
set $filesize=16k
set $nthreads=1
set $meaniosize=16k
set $readiosize=1m
set mode quit firstdone

define fileset name=kept,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$dirwidth,prealloc,paralloc
define fileset name=removed,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$dirwidth,prealloc,paralloc

define process name=store
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop openfile name=open-append,filesetname=kept,fd=1
    flowop appendfilerand name=append-some,iosize=$meaniosize,fd=1
    flowop closefile name=close-append,fd=1
    flowop openfile name=open-read,filesetname=kept,fd=1
    flowop readwholefile name=read-all,fd=1,iosize=$readiosize
    flowop closefile name=close-read,fd=1
    flowop deletefile name=delete-one,filesetname=removed
  }
}
run
