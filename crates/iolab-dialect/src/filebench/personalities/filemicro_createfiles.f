# Files are made beside others until there were 15000 operations.
set $dir=/tmp
set $count=15000
set $filesize=1k
set $iosize=1m
set $meandirwidth=100000
set $nfiles=20000
set $nthreads=1
set mode quit firstdone

define fileset name=many,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=50

define process name=micro
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop createfile name=create-new,filesetname=many,fd=1
    flowop writewholefile name=write-new,fd=1,iosize=$iosize
    flowop closefile name=close-new,fd=1
    flowop finishoncount name=finish,value=$count
  }
}
run
