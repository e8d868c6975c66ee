# Files are removed until 1000 are gone.
set $dir=/tmp
set $count=1000
set $filesize=16k
set $nfiles=5000
set $meandirwidth=100
set $nthreads=16
set mode quit firstdone

define fileset name=many,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=100,paralloc

define process name=micro
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop deletefile name=delete-one,filesetname=many
    flowop finishoncount name=finish,value=$count
  }
}
run
